"""Images: read as sequences or at once, from the files that each set is published in."""
