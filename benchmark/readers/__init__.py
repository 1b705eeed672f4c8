"""Readers of foreign files for datasets: annotations, archives, images, arrays.

Raw files may come from anyone: names that lead outside, links, pickles, bombs and
damaged bytes are refused with a UserError.
"""

from benchmark.core.errors import checked as checked
from benchmark.core.files import content as content
from benchmark.core.files import is_file as is_file
from benchmark.core.files import opened as opened
from benchmark.core.files import parse_json as parse_json
from benchmark.core.files import readable as readable
from benchmark.core.names import LONGEST_PATH as LONGEST_PATH
from benchmark.core.names import check_text as check_text
from benchmark.core.names import inside as inside
