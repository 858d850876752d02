"""The five layers of the Ascend stack, each tested, with the evidence and the mend."""

from npufuse_tui.doctor.diagnose import diagnose
from npufuse_tui.doctor.diagnosis import Diagnosis, Layer, Status

__all__ = ["Diagnosis", "Layer", "Status", "diagnose"]
