"""From a folder of files to documents with structure: decoding, conversion, sections, passages, revisions."""
