"""How tables and files are written and read: Arrow schemas from records, Parquet, atomic files, DuckDB views.

What does not belong here: what is in the tables. That is said once, in ``records``.
"""
