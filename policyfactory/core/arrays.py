"""Names of the types of arrays that are everywhere."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "Int64Array"]

FloatArray = NDArray[np.float64]
Int64Array = NDArray[np.int64]
