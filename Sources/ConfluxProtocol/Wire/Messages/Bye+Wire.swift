extension Bye: WireField {
    static let bytesMin = 8 + 2 + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a hello's number")
        let code = try reader.code(ByeCode.self, "a bye's code")
        self.init(
            code: code, message: try reader.text("a bye's message"), answering: request)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.code(code)
        writer.text(message)
    }
}
