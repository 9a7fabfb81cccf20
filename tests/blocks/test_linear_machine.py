"""Linear machines that are kept and restored."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from architectures.blocks.linear_machine import learnt, restored


@pytest.mark.parametrize("classes", [2, 3])
def test_a_restored_machine_has_the_numbers_that_were_learnt_bit_by_bit(classes):
    """Rounded ones would change answers near the border between two classes."""
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(60, 5)), np.arange(60) % classes
    machine = LinearSVC(random_state=0).fit(features, labels)
    other = restored(learnt(machine))
    assert other.coef_.dtype == other.intercept_.dtype == np.float64
    np.testing.assert_array_equal(other.coef_, machine.coef_)
    np.testing.assert_array_equal(other.intercept_, machine.intercept_)
    np.testing.assert_array_equal(other.decision_function(features), machine.decision_function(features))
    np.testing.assert_array_equal(other.predict(features), machine.predict(features))
