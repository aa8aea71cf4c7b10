import ConfluxVocabulary

/// What has arrived of a frame, with its header, or of a greeting.
///
/// It is kept in parts. A part never grows, so that no bytes are copied to make room for others, and the memory of a
/// frame is never held twice. Each part has room for as much as has arrived before, up to ``partBytesMax``: a peer
/// that announces a large frame reserves no memory by that.
struct PartialFrame {
    private var parts: [[UInt8]] = []
    /// How many bytes have arrived.
    private(set) var count = 0
    /// How many bytes are reserved.
    private(set) var heldBytes = 0

    /// The most bytes that a new part has room for.
    static let partBytesMax = 256 << 10
    private static let partBytesMin = 64

    init() {}

    /// Makes an empty frame.
    ///
    /// - Parameter memory: An empty array, whose memory becomes the first part.
    init(memory: [UInt8]) {
        guard memory.capacity > 0 else { return }
        parts = [memory]
        heldBytes = memory.capacity
    }

    var isEmpty: Bool { count == 0 }

    /// The first bytes: at least the header of a frame or the whole greeting, as soon as they have arrived.
    var beginning: Bytes { parts.first?[...] ?? [] }

    /// Adds bytes.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - missing: How many bytes are missing, these included.
    mutating func append(_ bytes: UnsafeRawBufferPointer, missing: Int) {
        var rest = bytes
        while !rest.isEmpty {
            let taken = append(missing: missing, reserving: rest.count) { memory in
                let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(memory.count))
                memory.copyMemory(from: piece)
                return piece.count
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
        }
    }

    /// Adds bytes that a function writes into the memory of the last part, or of a new one if that is full.
    ///
    /// - Parameters:
    ///   - missing: How many bytes are missing. At most so many are written.
    ///   - least: How much room a new part has at least, unless fewer bytes are missing.
    ///   - write: Writes bytes and returns how many.
    /// - Returns: What `write` returned.
    mutating func append(
        missing: Int, reserving least: Int = 0,
        writtenBy write: (UnsafeMutableRawBufferPointer) -> Int
    ) -> Int {
        if parts.last.map({ $0.count == $0.capacity }) ?? true {
            let expected = max(least, min(count, Self.partBytesMax))
            var part: [UInt8] = []
            part.reserveCapacity(max(Self.partBytesMin, min(expected, missing)))
            heldBytes += part.capacity
            parts.append(part)
        }
        let written = parts[parts.count - 1].append(atMost: missing, writtenBy: write)
        count += max(0, written)
        return written
    }

    /// Takes all bytes out, and frees each part as soon as it is copied.
    mutating func take() -> [UInt8] {
        defer { self = PartialFrame() }
        guard parts.count > 1 else { return parts.popLast() ?? [] }
        var whole: [UInt8] = []
        whole.reserveCapacity(count)
        for index in parts.indices {
            whole.append(contentsOf: parts[index])
            parts[index] = []
        }
        return whole
    }
}
