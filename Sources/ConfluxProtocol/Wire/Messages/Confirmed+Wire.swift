import ConfluxVocabulary

extension Barrier: WireField {
    static let bytesMin = 8

    init(reading reader: inout FrameReader) throws(WireError) {
        self.init(request: try reader.fixed(UInt64.self, "a request's number"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
    }
}

extension Drop: WireField {
    static let bytesMin = 8 + StoreName.bytesMin + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let store = try StoreName(reading: &reader)
        self.init(
            request: request, store: store,
            life: SequenceNumber(try reader.positive("a store's life")))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        store.write(to: &writer)
        writer.number(life)
    }
}

extension Confirmed: WireField {
    static let bytesMin = 8 + 1 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what came of a request") {
        case 1:
            self.init(
                request: request, outcome: .confirmed(try reader.sequence("the last number")))
        case 2:
            let code = try reader.code(RejectionCode.self, "a rejection's code")
            self.init(
                request: request,
                outcome: .failed(code, message: try reader.text("a rejection's message")))
        default: throw .malformed(at: at, expected: "what came of a request")
        }
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        switch outcome {
        case .confirmed(let last):
            writer.fixed(UInt8(1))
            writer.number(last)
        case .failed(let code, let message):
            writer.fixed(UInt8(2))
            writer.code(code)
            writer.text(message)
        }
    }
}
