"""The judges' rubrics: versioned files, one criterion each. A rubric's version carries a hash of its text."""
