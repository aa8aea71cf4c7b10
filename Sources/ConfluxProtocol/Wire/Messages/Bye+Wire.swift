extension Bye: WireField {
    static let bytesMin = 2 + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let code = try reader.code(ByeCode.self, "a bye's code")
        self.init(code: code, message: try reader.text("a bye's message"))
    }

    func write(to writer: inout FrameWriter) {
        writer.code(code)
        writer.text(message)
    }
}
