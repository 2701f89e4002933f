@_exported public import TowpathTLS
@_exported public import TowpathWire
