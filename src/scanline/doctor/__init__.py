"""Doctor: what this machine is, does right, and does per second; forecasts of runs on it."""

from .forecast import Forecast, forecast

__all__ = ["Forecast", "forecast"]
