import ConfluxVocabulary

/// The space of a member of etcd, as it reports it.
package struct EtcdStatus: Sendable {
    /// The size of its file.
    package var fileBytes: UInt64 = 0
    /// How many bytes of the file are in use.
    package var usedBytes: UInt64 = 0
    /// The quota for the file, from etcd 3.6 on; 0 in older versions.
    package var quotaBytes: UInt64 = 0

    package init() {}

    init(_ message: Bytes) throws(ProtobufReader.Malformed) {
        var reader = ProtobufReader(message)
        while let (field, value) = try reader.next() {
            switch (field, value) {
            case (3, .number(let number)): fileBytes = number
            case (9, .number(let number)): usedBytes = number
            case (12, .number(let number)): quotaBytes = number
            default: break
            }
        }
    }
}
