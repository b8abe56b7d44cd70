"""Names of the types of arrays that are everywhere."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Float32Array", "FloatArray", "Int32Array", "Int64Array", "UInt8Array", "UInt64Array"]

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt8Array = NDArray[np.uint8]
UInt64Array = NDArray[np.uint64]
