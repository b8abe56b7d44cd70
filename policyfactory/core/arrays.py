"""Names of the types of arrays that are everywhere."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Float32Array", "FloatArray", "Int64Array", "UInt8Array"]

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
Int64Array = NDArray[np.int64]
UInt8Array = NDArray[np.uint8]
