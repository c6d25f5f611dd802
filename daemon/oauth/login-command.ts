/** The command that starts a login of this provider, for hints and pages. */
export const loginCommand = (provider: string): string => `doorward oauth login ${provider}`
