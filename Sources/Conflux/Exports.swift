// Exports the codings, and the parts of the vocabulary that this module's own interface uses.
@_exported import ConfluxCoding
@_exported import struct ConfluxVocabulary.DispatchToken
@_exported import struct ConfluxVocabulary.Epoch
@_exported import struct ConfluxVocabulary.Incarnation
@_exported import typealias ConfluxVocabulary.LogID
@_exported import struct ConfluxVocabulary.Origin
@_exported import enum ConfluxVocabulary.PayloadCoding
@_exported import struct ConfluxVocabulary.Receipt
@_exported import struct ConfluxVocabulary.SequenceNumber
@_exported import struct ConfluxVocabulary.SplitMix64
@_exported import struct ConfluxVocabulary.StoreVersion
@_exported import struct ConfluxVocabulary.Timestamp
@_exported import struct ConfluxVocabulary.TreeMap
