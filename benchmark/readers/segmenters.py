"""Words of scripts without spaces: a caption becomes its words with spaces between.

characters  each character is a word: Chinese, Japanese, Thai, Lao, Khmer, Burmese
jieba       words of Chinese; pip install jieba
pythainlp   words of Thai; pip install pythainlp
"""

import re
from collections.abc import Callable
from importlib import import_module

from benchmark.core.errors import UserError

# Thai, Lao, Burmese, Khmer, kana, Chinese: a sign with the marks on it.
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
MARKS += "\u17b6-\u17d3\u3099\u309a"
SPACELESS = re.compile(
    rf"[\u0e01-\u0eff\u1000-\u109f\u1780-\u17d3\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
    rf"\U00020000-\U0003ffff][{MARKS}]*"
)
LIBRARIES = {"jieba": "lcut", "pythainlp": "word_tokenize"}  # and its function


def segmenter(name: str) -> Callable[[str], str]:
    """The function that puts spaces between the words of a caption.

    Raises UserError for an unknown name, and for a library that is not installed.
    """
    if name == "characters":
        return lambda text: " ".join(SPACELESS.sub(r" \g<0> ", text).split())
    where = "folder: option tokeniser"
    if name not in LIBRARIES:
        raise UserError(
            where,
            expected=f"one of {', '.join(('characters', *LIBRARIES))}",
            found=repr(name),
            do="correct the option",
        )
    try:
        words = getattr(import_module(name), LIBRARIES[name])
    except (ImportError, AttributeError) as error:
        raise UserError(
            where,
            expected=f"the library {name}",
            found=f"none that can be imported ({error})",
            do=f"run: pip install {name}",
        ) from error
    return lambda text: " ".join(" ".join(words(text)).split())
