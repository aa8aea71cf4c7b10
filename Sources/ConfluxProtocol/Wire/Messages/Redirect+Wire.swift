import ConfluxVocabulary

extension Redirect: WireField {
    static let bytesMin = 8 + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a hello's number")
        self.init(request: request, address: try reader.text("a sequencer's address"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.text(address)
    }
}

extension SequencerPlace: WireField {
    static let bytesMin = 2 + 1 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let address = try reader.text("a sequencer's address")
        let isServing = try reader.flag("whether a sequencer serves")
        self.init(
            address: address, isServing: isServing,
            last: try reader.sequence("the last number of a sequencer"))
    }

    func write(to writer: inout FrameWriter) {
        writer.text(address)
        writer.flag(isServing)
        writer.number(last)
    }
}
