"""What of scikit-learn's own checks does not apply to series, and why."""

_LENGTHS = (
    "a row of a table (n, time) is a series of one feature, not a row of features: its length is "
    "no part of the model, and series of another length may be asked about"
)

DO_NOT_APPLY: dict[str, str] = {
    "check_n_features_in": f"{_LENGTHS}; n_features_in_ counts features of a step",
    "check_n_features_in_after_fitting": f"{_LENGTHS}; another number of features is refused",
    "check_classifiers_train": f"{_LENGTHS}; the rest of the check is in tests/estimators",
}
"""By the name of a check of ``sklearn.utils.estimator_checks``, why it does not apply to the
estimators: what ``check_estimator(model, expected_failed_checks=DO_NOT_APPLY)`` wants to know."""
