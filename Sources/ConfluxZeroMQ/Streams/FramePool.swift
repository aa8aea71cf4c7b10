import ConfluxVocabulary

/// The memory of large frames that were taken, for those to come: the system has provided it already, where new
/// memory costs a page fault for each 4 KiB.
///
/// A frame is a slice of an array. Whoever still has it keeps its memory, and then the next frame gets new
/// memory instead.
///
/// Confined to the thread that owns the socket.
final class FramePool {
    private var frames: [[UInt8]] = []
    private var next = 0

    /// How many frames' memory is kept.
    static let framesMax = 8
    /// The largest memory that is kept.
    static let frameBytesMax = 1 << 20
    /// What is smaller costs no page faults anew: the allocator keeps it.
    static let frameBytesMin = 32 << 10

    /// An empty array for a frame of so many bytes, with memory for all of it unless it is very large, or so small
    /// that the allocator keeps its memory anyway.
    func take(byteCount: Int) -> [UInt8] {
        var frame: [UInt8] = []
        guard byteCount >= Self.frameBytesMin, byteCount <= Self.frameBytesMax else { return frame }
        if !frames.isEmpty {
            next = (next + 1) % frames.count
            // Whoever counts the bytes of frames that wait counts their memory, but for a quarter.
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

    /// Keeps a frame's memory for when nobody has the frame any more.
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
