"""From decisions to frozen snapshots: what is accepted, which id and side of the split it has, and the files."""
