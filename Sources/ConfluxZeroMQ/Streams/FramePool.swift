import ConfluxVocabulary

/// Reuses the memory of large frames. The system has provided this memory already, whereas new memory costs a page
/// fault for each 4 KiB.
///
/// A frame is a slice of an array. While somebody still has the frame, its memory can't be reused, and the next frame
/// gets new memory.
///
/// Confined to the thread that owns the socket.
final class FramePool {
    private var frames: [[UInt8]] = []
    private var next = 0

    /// The most frames whose memory is kept.
    static let framesMax = 8
    /// The most bytes of a frame whose memory is kept.
    static let frameBytesMax = 1 << 20
    /// The fewest bytes of such a frame. Smaller memory causes no new page faults, since the
    /// allocator keeps it.
    static let frameBytesMin = 32 << 10

    /// An empty array for a frame of this many bytes. It has memory for the whole frame, unless the frame is outside
    /// the bounds above.
    func take(byteCount: Int) -> [UInt8] {
        var frame: [UInt8] = []
        guard byteCount >= Self.frameBytesMin, byteCount <= Self.frameBytesMax else { return frame }
        if !frames.isEmpty {
            next = (next + 1) % frames.count
            // At most a quarter of a frame's size may be unused, so that the bytes of waiting
            // frames are a fair measure of their memory.
            if frames[next].capacity >= byteCount,
                frames[next].capacity <= byteCount + byteCount / 4
            {
                swap(&frame, &frames[next])
                frame.removeAll(keepingCapacity: true)
                return frame
            }
        }
        frame.reserveCapacity(byteCount)
        return frame
    }

    /// Keeps a frame's memory, for reuse when nobody has the frame any more.
    func keep(_ frame: [UInt8]) {
        guard frame.capacity >= Self.frameBytesMin, frame.capacity <= Self.frameBytesMax else {
            return
        }
        if frames.count < Self.framesMax {
            frames.append(frame)
        } else {
            frames[next] = frame
        }
    }
}
