"""``magnetar doctor``: looks at a machine before, and at a broker while, it is used, and says what to mend.

Reading order: ``symptom`` (what a check says), ``judgements`` (numbers to symptoms, pure), ``checks`` (takes the
numbers from this machine and the broker), ``command`` (runs them and prints).
"""
