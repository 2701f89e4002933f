@_exported public import TowpathWire
