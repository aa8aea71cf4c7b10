import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxCoding

/// An action that consists of bytes only is not coded by the tape, and the result is the same.
@Suite struct CompactBytesTests {
    private let quick = ActionCoder<Data>(sizeBytesMax: 1 << 21)
    /// The same bytes in an optional are coded by the tape.
    private let plain = ActionCoder<Data?>(sizeBytesMax: 1 << 21)

    @Test(arguments: [0, 1, 14, 15, 16, 63, 64, 142, 143, 300, 16_398, 16_399, 70_000, 1 << 20])
    func `bytes are coded as they are by the tape`(_ count: Int) throws {
        let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        let bytes = try quick.encode(data, as: .compact)
        #expect(try bytes == plain.encode(data, as: .compact))
        #expect(try quick.decode(bytes[...], as: .compact) == data)
        // Data whose indices don't begin at 0.
        let slice = (Data([9, 9, 9]) + data).dropFirst(3)
        #expect(try quick.encode(slice, as: .compact) == bytes)
        #expect(try quick.decode(quick.encode(data, as: .json)[...], as: .json) == data)
    }

    @Test func `invalid payloads are refused with the tape's errors`() throws {
        let whole = try quick.encode(Data(repeating: 7, count: 40), as: .compact)
        var broken = (0..<whole.count).map { Array(whole[..<$0]) }
        broken.append(whole + [0])
        for place in 0..<3 {
            for bit in 0..<8 {
                var bytes = whole
                bytes[place] ^= 1 << UInt8(bit)
                broken.append(bytes)
            }
        }
        // A count that is not in its shortest form, and a count with too many bits.
        broken.append(Array(whole[..<2]) + [0x80 | whole[2], 0] + whole[3...])
        broken.append(Array(whole[..<2]) + [UInt8](repeating: 0xFF, count: 10) + whole[3...])
        for bytes in broken {
            let found = Result { () throws(CodingFailure) in
                try quick.decode(bytes[...], as: .compact)
            }
            let expected = Result { () throws(CodingFailure) in
                try plain.decode(bytes[...], as: .compact)
            }
            switch (found, expected) {
            case (.failure(let found), .failure(let expected)):
                #expect(found.code == expected.code && found.message == expected.message)
            case (.success(let found), .success(let expected)): #expect(found == expected)
            default:
                // Null means nil for the optional, but is invalid for the bytes.
                #expect(bytes.count > 1 && bytes[1] >> 4 == 0, "\(bytes)")
            }
        }
        let small = ActionCoder<Data>(sizeBytesMax: 10)
        #expect(throws: CodingFailure.self) { try small.encode(Data(count: 11), as: .compact) }
        #expect(throws: CodingFailure.self) { try small.decode(whole[...], as: .compact) }
    }
}
