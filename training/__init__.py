"""Makes the models that ship with Clawmark: text, teacher, training, export, evaluation.

Nothing here is part of the package. `README.md` has the commands.
"""
