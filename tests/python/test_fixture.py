"""The fixture of pytest; unittest passes over this file."""


def test_fixture(assert_equivalent):
    import pytest

    torch = pytest.importorskip("torch")
    x = [torch.randn(3, 8)]
    assert_equivalent(torch.nn.SiLU(), torch.nn.SiLU(), batches=x)
    with pytest.raises(AssertionError, match="different"):
        assert_equivalent(torch.nn.SiLU(), torch.nn.GELU(), batches=x)
