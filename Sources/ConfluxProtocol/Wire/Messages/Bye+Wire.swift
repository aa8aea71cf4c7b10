extension Bye: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        let request = try coder.field(value?.request, "a hello's number")
        self.init(
            code: try coder.field(value?.code, "a bye's code"),
            message: try coder.field(value?.message, "a bye's message"), answering: request)
    }
}

extension Redirect: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a hello's number"),
            address: try coder.field(value?.address, "a sequencer's address"))
    }
}
