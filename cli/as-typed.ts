/**
 * Hints name commands as `doorward …`. For a person who runs it by npx that would be "command not
 * found", so they are shown the way they were typed.
 */
export const asTyped = (text: string, env: NodeJS.ProcessEnv = process.env): string =>
  // npm names its own command to what it runs: https://docs.npmjs.com/cli/using-npm/scripts
  env['npm_command'] === 'exec'
    ? text.replace(/(?<![\w/.-])doorward (?=[a-z])/g, 'npx doorward ')
    : text
