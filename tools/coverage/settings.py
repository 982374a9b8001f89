"""What becomes of each of Apache Pulsar's settings: effective, refused, not built, not applicable.

An effective setting counts as seen if a test outside tests/unit/config says its name: a test that only reads it from a
file shows no effect. Those that no test says stand in ``unseen_settings.txt``, which may only become shorter. That a
test sees the effect is proven for those in ``seen_settings.tsv`` (`proven_settings`): the effective ones and no others.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from magnetar.config.setting_effects import EffectKind, all_effects
from tools.coverage import proven_settings

ROOT: Final = Path(__file__).parents[2]
UNSEEN: Final = Path(__file__).with_name("unseen_settings.txt")
_WORD: Final = re.compile(r"\b[a-z][A-Za-z0-9_]{5,}\b")
_WORDS: Final = {
    EffectKind.EFFECTIVE: "effective",
    EffectKind.REFUSED: "refused with a reason",
    EffectKind.NOT_BUILT: "not built, with a reason",
    EffectKind.NOT_APPLICABLE: "not applicable, with a reason",
}


def unseen() -> list[str]:
    """The effective settings of Pulsar whose names no test says."""
    said: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        if "unit/config" not in path.as_posix():
            said.update(_WORD.findall(path.read_text("utf-8")))
    found = all_effects()
    return sorted(name for name in found if found[name].kind is EffectKind.EFFECTIVE and name not in said)


def main() -> int:
    """Print the counts; 1 if an effective setting is seen by no test and is not in the list of those."""
    found = all_effects()
    counted = Counter(effect.kind for effect in found.values())
    print(f"{len(found)} settings of Apache Pulsar 4.0.8")
    for kind, words in _WORDS.items():
        print(f"{counted[kind]:5} {words}")
    without = unseen()
    listed = UNSEEN.read_text("utf-8").split()
    wrong = [name for name in found if found[name].kind is not EffectKind.EFFECTIVE and not found[name].reason]
    wrong += [name for name in without if name not in listed]
    proven = proven_settings.rows()
    wrong += proven_settings.without_test()
    wrong += proven.keys() ^ {name for name in found if found[name].kind is EffectKind.EFFECTIVE}
    print(f"{len(proven):5} effective whose test was seen to fail while the setting was inert")
    print(f"{len(without):5} effective that no test names: {', '.join(without) or 'none'}")
    print(f"{len(wrong):5} wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
