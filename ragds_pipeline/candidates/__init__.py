"""From the question plan to drafts: what is asked for, how it is asked, and what was read from the replies."""
