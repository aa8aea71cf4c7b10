import ConfluxVocabulary

/// The checksum that tells an intact logged commit from a damaged one. The input is the commit's bytes. The seed is
/// the checksum of first number, last number and epoch, 8 bytes each, little-endian.
extension Checksum {
    static func of(
        first: UInt64, last: UInt64, epoch: UInt64, bytes: UnsafeRawBufferPointer
    ) -> UInt64 {
        let place = withUnsafeBytes(
            of: (first.littleEndian, last.littleEndian, epoch.littleEndian)
        ) { hash($0) }
        return hash(bytes, seed: place)
    }

    static func of(_ commit: LoggedCommit) -> UInt64 {
        commit.bytes.withUnsafeBytes { bytes in
            of(
                first: commit.first.rawValue, last: commit.last.rawValue,
                epoch: commit.epoch.rawValue, bytes: bytes)
        }
    }
}
