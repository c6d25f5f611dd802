/**
 * Why something on the bus did not work. `code` is the D-Bus name of the error
 * (`org.freedesktop.DBus.Error.ServiceUnknown`) when a program answered it, else one of
 * `bus-absent`, `bus-refused`, `bus-closed`, `bus-timeout`, `bus-protocol`. Met only inside the tray;
 * what a person sees is a `DoorwardError`. The message may come from a stranger: show the code.
 */
export class BusError extends Error {
  override readonly name = 'BusError'
  readonly code: string

  constructor(code: string, message: string = code) {
    super(message)
    this.code = code
  }
}
