@_exported import ConfluxVocabulary
