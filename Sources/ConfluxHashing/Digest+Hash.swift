import CSodium
import ConfluxVocabulary

extension Digest {
    /// Hashes bytes; takes time linear in their count.
    public init(of bytes: some Sequence<UInt8>) {
        let digest = bytes.withContiguousStorageIfAvailable {
            Digest(hashing: UnsafeRawBufferPointer($0))
        }
        self = digest ?? ContiguousArray(bytes).withUnsafeBytes { Digest(hashing: $0) }
    }

    /// Hashes bytes, with or without a key.
    ///
    /// - Parameters:
    ///   - input: The bytes.
    ///   - key: At most 64 bytes. Other keys give other digests of the same bytes.
    package init(
        hashing input: UnsafeRawBufferPointer,
        key: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) {
        Sodium.start()
        self.init { hash in
            let code = crypto_generichash(
                hash.baseAddress!.assumingMemoryBound(to: UInt8.self), hash.count,
                input.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(input.count),
                key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count)
            precondition(
                code == 0, "BLAKE2b of \(input.count) bytes with a key of \(key.count): \(code)")
        }
    }

    /// The first 8 bytes as a number, where fewer bytes than all are wanted.
    package var number: UInt64 {
        withBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
    }
}

extension Identifier {
    /// Makes an identifier of the first 16 bytes of a text's digest.
    package init(hashOf text: String) {
        self = Digest(of: text.utf8).withBytes { bytes in
            Identifier(
                high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
    }
}

/// The library that computes BLAKE2b.
enum Sodium {
    private static let state = sodium_init()

    /// Initialises libsodium, which chooses the fastest code for this processor.
    static func start() {
        precondition(state >= 0, "libsodium found no source of random numbers")
    }
}
