"""Recurrent networks with the interface of scikit-learn, for time series of any length.

They need scikit-learn: ``pip install "attractor[estimators]"``.
"""

from attractor.errors import InputError

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise InputError(
        "expected scikit-learn for attractor.estimators, but it is not installed. "
        'Try pip install "attractor[estimators]".'
    ) from error

from attractor.estimators.checked import DO_NOT_APPLY as DO_NOT_APPLY
from attractor.estimators.classifier import RecurrentClassifier as RecurrentClassifier
from attractor.estimators.compare import compare as compare
from attractor.estimators.files import load as load
from attractor.estimators.files import save as save
from attractor.estimators.regressor import RecurrentRegressor as RecurrentRegressor
