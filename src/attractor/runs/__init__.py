"""Processes driven in folders: saved, killed, resumed, watched, and compared with themselves."""
