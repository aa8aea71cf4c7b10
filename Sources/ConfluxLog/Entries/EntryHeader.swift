import ConfluxVocabulary

/// The header of a commit in a file of entries. The commit's bytes follow it, then zeros up to a multiple
/// of 8.
///
/// All numbers are little-endian:
///
/// | bytes | |
/// |---|---|
/// | 0–3 | how many bytes the commit has |
/// | 4–7 | ``durable``, in units of 8 bytes |
/// | 8–15 | the mark and the flags |
/// | 16–39 | first number, last number, epoch |
/// | 40–47 | the commit's ``Checksum`` |
/// | 48–79 | its ``ChainHash``, or zeros |
/// | 80–87 | the seal: a checksum of the bytes before, its place, and the log's salt |
///
/// Because of the seal, nothing else is taken for a header: neither what an action contains, nor what was
/// once written elsewhere.
package struct EntryHeader {
    package static let byteCount = 88
    private static let mark: UInt64 = 0x4346_4C58_0000_0000
    private static let chained: UInt64 = 1
    private static let endsAppend: UInt64 = 2
    private static let hashOffset = 48
    private static let sealOffset = 80

    /// How many bytes the commit has.
    package let length: Int
    /// How much of the file was on disk before this was written. A crash of the machine may take what comes
    /// after it, and nothing before it.
    package let durable: Int
    /// Whether the commit is the last of its append.
    package let endsAppend: Bool
    let isChained: Bool
    package let first: SequenceNumber
    package let last: SequenceNumber
    package let epoch: Epoch
    package let checksum: UInt64

    /// How many bytes of the file the header and its commit take.
    package var size: Int { Self.size(length) }

    package static func size(_ length: Int) -> Int { (byteCount + length + 7) & ~7 }

    /// Reads a header; nil if there is none.
    ///
    /// - Parameters:
    ///   - bytes: At least ``byteCount`` bytes.
    ///   - place: Where they are.
    package init?(_ bytes: UnsafeRawBufferPointer, at place: EntryPlace) {
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        let flags = word(8) ^ Self.mark
        guard flags <= Self.chained | Self.endsAppend,
            word(Self.sealOffset) == place.seal(Self.sealed(bytes))
        else { return nil }
        let sizes = word(0)
        length = Int(UInt32(truncatingIfNeeded: sizes))
        durable = Int(sizes >> 32) * 8
        isChained = flags & Self.chained != 0
        endsAppend = flags & Self.endsAppend != 0
        first = SequenceNumber(word(16))
        last = SequenceNumber(word(24))
        epoch = Epoch(word(32))
        checksum = word(40)
        guard first > .zero, first <= last, last.rawValue < UInt64(Int64.max) else { return nil }
    }

    /// Writes the header of a commit.
    ///
    /// - Parameters:
    ///   - commit: The commit, with its hash.
    ///   - durable: How much of the file is on disk, a multiple of 8.
    ///   - endsAppend: Whether the commit is the last of its append.
    ///   - place: Where the header will be.
    ///   - bytes: Takes the header.
    package static func write(
        _ commit: ChainedCommit, durable: Int, endsAppend: Bool, at place: EntryPlace,
        into bytes: UnsafeMutableRawBufferPointer
    ) {
        func put(_ word: UInt64, _ offset: Int) {
            bytes.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
        }
        put(UInt64(commit.commit.bytes.count) | UInt64(durable / 8) << 32, 0)
        put(mark | (commit.hash == nil ? 0 : chained) | (endsAppend ? Self.endsAppend : 0), 8)
        put(commit.commit.first.rawValue, 16)
        put(commit.commit.last.rawValue, 24)
        put(commit.commit.epoch.rawValue, 32)
        put(Checksum.of(commit.commit), 40)
        let hash = UnsafeMutableRawBufferPointer(rebasing: bytes[hashOffset..<sealOffset])
        if let kept = commit.hash {
            kept.withBytes { hash.copyMemory(from: $0) }
        } else {
            hash.zero()
        }
        put(place.seal(sealed(UnsafeRawBufferPointer(bytes))), sealOffset)
    }

    /// The hash in a header's bytes; nil if there is none.
    package func hash(in bytes: UnsafeRawBufferPointer) -> ChainHash? {
        guard isChained else { return nil }
        return ChainHash(UnsafeRawBufferPointer(rebasing: bytes[Self.hashOffset..<Self.sealOffset]))
    }

    private static func sealed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[..<sealOffset])
    }
}

/// A place in the files of a log's entries.
package struct EntryPlace {
    /// The log's random number, which nobody else knows.
    let salt: UInt64
    /// The first number of the file.
    let file: SequenceNumber
    let offset: Int

    fileprivate func seal(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        Checksum.of(first: salt, last: file.rawValue, epoch: UInt64(offset), bytes: bytes)
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Sets all bytes to zero.
    func zero() { initializeMemory(as: UInt8.self, repeating: 0) }
}
