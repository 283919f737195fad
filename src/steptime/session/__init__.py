"""Everything that one command measures: `run` for cases by themselves, `compare` for two against each other."""

from steptime.session.certify import Outcome, certify
from steptime.session.pairs import Refused, compare
from steptime.session.rounds import run
from steptime.session.single import profile, train
from steptime.session.watch import Watch

__all__ = ["Outcome", "Refused", "Watch", "certify", "compare", "profile", "run", "train"]
