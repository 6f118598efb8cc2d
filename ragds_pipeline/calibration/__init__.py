"""How far the judges can be trusted: their verdicts against people's decisions and labelled probes.

What belongs here: what a decision of people says of a judge, the measuring, the report. What does not: the
statistics of two columns of labels (``filters.calibration``) and how judges and probes are asked
(``filters.judging``, ``filters.probing``).
"""
