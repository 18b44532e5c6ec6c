"""Which objects a list or watch wants: both kinds of selectors."""

from casaba.simulation.api_server.field_selectors import parsed_field_selector
from casaba.simulation.api_server.label_selectors import parsed_label_selector

__all__ = ["parsed_field_selector", "parsed_label_selector"]
