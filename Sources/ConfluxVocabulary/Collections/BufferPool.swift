/// Reuses the memory of large buffers. The system has provided this memory already, whereas new memory costs a page
/// fault for each 4 KiB.
///
/// A buffer is handed on as an array, or a slice of one. While somebody still has it, its memory can't be reused, and
/// the next buffer gets new memory.
///
/// Not thread-safe.
package final class BufferPool {
    /// Oldest first: those are most likely to be released.
    private var buffers: [[UInt8]] = []

    /// The most buffers whose memory is kept.
    package static let buffersMax = 8
    /// The most bytes of a buffer whose memory is kept.
    package static let bufferBytesMax = 1 << 20
    /// The fewest bytes of such a buffer. Smaller memory causes no new page faults, since the allocator keeps it.
    package static let bufferBytesMin = 32 << 10

    package init() {}

    /// An empty array for this many bytes. It has memory for all of them, unless they are outside the bounds above.
    package func take(byteCount: Int) -> [UInt8] {
        var buffer: [UInt8] = []
        guard byteCount >= Self.bufferBytesMin, byteCount <= Self.bufferBytesMax else {
            return buffer
        }
        // At most a quarter of a buffer may be unused, so that the bytes in waiting buffers are a fair measure of their
        // memory.
        let sizes = byteCount...byteCount + byteCount / 4
        if let index = buffers.firstIndex(where: { sizes.contains($0.capacity) }) {
            buffer = buffers.remove(at: index)
            buffer.removeAll(keepingCapacity: true)
        } else {
            // With some room, so that it fits later ones of about this size.
            buffer.reserveCapacity(byteCount + byteCount / 8)
        }
        return buffer
    }

    /// Keeps a buffer's memory, for reuse when nobody has the buffer any more.
    package func keep(_ buffer: [UInt8]) {
        guard buffer.count >= Self.bufferBytesMin, buffer.count <= Self.bufferBytesMax else {
            return
        }
        if buffers.count == Self.buffersMax { buffers.removeFirst() }
        buffers.append(buffer)
    }
}
