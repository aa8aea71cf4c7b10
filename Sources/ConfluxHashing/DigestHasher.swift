import CSodium
import ConfluxVocabulary

/// Makes a `Digest` of bytes that arrive piece by piece. The result does not depend on where the pieces are cut.
///
/// A value: a copy continues on its own. What it needs for its state is allocated with its first byte.
package struct DigestHasher: Sendable {
    /// nil before the first byte.
    private var state: State?
    /// How many bytes were taken.
    package private(set) var byteCount: UInt64 = 0

    private static let ofNothing = Digest(of: [] as [UInt8])

    /// Makes a hasher that has taken no bytes.
    package init() {}

    /// Takes the next bytes; takes time linear in their count.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        byteCount += UInt64(bytes.count)
        if !isKnownUniquelyReferenced(&state) { state = state.map { State($0) } ?? State() }
        state?.update(bytes)
    }

    /// Takes the next bytes.
    package mutating func update(_ bytes: Bytes) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Takes a number as eight bytes, the lowest byte first.
    package mutating func update(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { update($0) }
    }

    /// The digest of all bytes that were taken.
    package func finish() -> Digest {
        state.map { State($0).finish() } ?? Self.ofNothing
    }
}

/// libsodium's state of a hash that is under way. It must be aligned to 64 bytes, which only memory of its own is.
// Sendable: only a hasher changes it, and only while no other hasher refers to it.
private final class State: @unchecked Sendable {
    private static let byteCount = crypto_generichash_statebytes()
    private let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 64)

    /// Swift imports no type of this alignment.
    private var pointer: OpaquePointer { OpaquePointer(memory) }

    init() {
        Sodium.start()
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: Self.byteCount)
        let code = crypto_generichash_init(pointer, nil, 0, Digest.byteCount)
        precondition(code == 0, "BLAKE2b did not begin: \(code)")
    }

    init(_ other: State) {
        memory.copyMemory(from: other.memory, byteCount: Self.byteCount)
    }

    deinit {
        memory.deallocate()
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        let code = crypto_generichash_update(
            pointer, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
        precondition(code == 0, "BLAKE2b did not take \(bytes.count) bytes: \(code)")
    }

    /// It takes no bytes after this.
    func finish() -> Digest {
        Digest { hash in
            let code = crypto_generichash_final(
                pointer, hash.baseAddress!.assumingMemoryBound(to: UInt8.self), hash.count)
            precondition(code == 0, "BLAKE2b did not end: \(code)")
        }
    }
}
