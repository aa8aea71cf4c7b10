@_exported import ConfluxCoding
@_exported import ConfluxVocabulary
