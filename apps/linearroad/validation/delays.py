"""The latency of answers, from Time to Emit, by type, by minute, and as a distribution."""

from __future__ import annotations

from typing import Any

from linearroad.validation.tables import Frame, Workshop

__all__ = ["BINS_PER_DECADE", "delays"]

BINS_PER_DECADE = 8
_QUANTILES = "0.5D, 0.9D, 0.99D, 0.999D"
_FIGURES = f"""percentile_approx(delay_ms, array({_QUANTILES}), 10000) AS quantiles,
               max(delay_ms) AS worst_ms"""


def delays(shop: Workshop, answers: Frame) -> dict[str, list[dict[str, Any]]]:
    """Three small tables: `types`, `minutes` and `histogram`, delays in milliseconds."""
    delayed = shop.keep(
        answers.where("malformed IS NULL").selectExpr(
            "type", "CAST(time DIV 60 AS int) + 1 AS minute", "emit_ms - 1000L * time AS delay_ms"
        )
    )
    return {
        "types": shop.rows(
            shop.table(f"SELECT type, {_FIGURES} FROM {{d}} GROUP BY type", d=delayed)
        ),
        "minutes": shop.rows(
            shop.table(f"SELECT type, minute, {_FIGURES} FROM {{d}} GROUP BY 1, 2", d=delayed)
        ),
        # Bins of equal ratio: most answers take milliseconds, and the limits are seconds.
        "histogram": shop.rows(
            shop.table(
                f"""
                SELECT type, CAST(floor({BINS_PER_DECADE} * log10(greatest(delay_ms, 1L))) AS int)
                                 AS bin, count(*) AS answers
                FROM {{d}} GROUP BY 1, 2
                """,
                d=delayed,
            )
        ),
    }
