import ConfluxCoding
import Testing

/// What must hold for every type that writes and reads itself.
enum CodingForms {
    /// A value has one form, whether it writes itself or `Codable` does.
    static func expectOne<Value: CompactCodable & Hashable & Sendable>(
        _ value: Value
    ) throws {
        let coder = ActionCoder<Value>()
        let quick = try #require(coder.quick)
        let bytes = [UInt8](unsafeUninitializedCapacity: QuickCodingLimits.bytesMax) {
            $1 = quick.write(value, to: UnsafeMutableRawBufferPointer($0)) ?? 0
        }
        #expect(try bytes == coder.encodeByTape(value, as: .compact))
        let place = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        defer { place.deallocate() }
        try #require(bytes.withUnsafeBufferPointer { quick.read($0, into: place) })
        #expect(place.move() == value)
        #expect(try coder.decode(coder.encode(value, as: .json)[...], as: .json) == value)
    }

    /// Cut and changed bytes are an error, or another value: the same as by the tape alone.
    static func expectSameWhenBroken<Value: CompactCodable & Hashable & Sendable>(
        _ value: Value
    ) throws {
        let coder = ActionCoder<Value>()
        let bytes = try coder.encode(value, as: .compact)
        for count in 0..<bytes.count {
            #expect(throws: CodingFailure.self) {
                try coder.decode(bytes[..<count], as: .compact)
            }
        }
        // After a change of any byte, the result is an error or another value: the same as by the tape alone.
        for place in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[place] ^= 1 << UInt8(bit)
                let plain = changed.withUnsafeBufferPointer { changed in
                    Result { () throws(CodingFailure) in
                        try coder.decodeByTape(changed, as: .compact)
                    }
                }
                let quick = Result { () throws(CodingFailure) in
                    try coder.decode(changed[...], as: .compact)
                }
                #expect(quick == plain)
            }
        }
    }
}
