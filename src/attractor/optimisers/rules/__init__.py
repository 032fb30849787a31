"""Update rules, one file each, and what several of them are made of."""
