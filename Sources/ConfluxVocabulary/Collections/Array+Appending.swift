extension [UInt8] {
    /// Appends bytes that a function writes into memory that the array has reserved already. They are neither set to
    /// zero before nor copied.
    ///
    /// - Parameters:
    ///   - most: The most bytes to append; fewer if the array has reserved less.
    ///   - write: Writes into the memory, from its beginning, and returns how many bytes it has written, or an error.
    ///     It is called once.
    /// - Returns: What `write` returned.
    /// - Throws: What `write` threw. Then nothing is appended.
    package mutating func append<Failure: Error>(
        atMost most: Int,
        writtenBy write: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        var outcome = Result<Int, Failure>.success(0)
        withoutActuallyEscaping({ (memory: UnsafeMutableRawBufferPointer) -> Int in
            let room = UnsafeMutableRawBufferPointer(rebasing: memory.prefix(most))
            outcome = Result { () throws(Failure) in try write(room) }
            // The system's functions return -1 for an error.
            return Swift.max(0, (try? outcome.get()) ?? 0)
        }) { append(contentsOf: WrittenBytes(write: $0)) }
        return try outcome.get()
    }
}

/// A sequence that only an array can take, and only once: it writes into the array's memory.
private struct WrittenBytes: Sequence, IteratorProtocol {
    let write: (UnsafeMutableRawBufferPointer) -> Int

    func next() -> UInt8? { nil }

    func _copyContents(
        initializing buffer: UnsafeMutableBufferPointer<UInt8>
    ) -> (WrittenBytes, Int) {
        (self, write(UnsafeMutableRawBufferPointer(buffer)))
    }
}
