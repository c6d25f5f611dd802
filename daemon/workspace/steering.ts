/*
 * Files that steer an agent, or its program: instructions, settings, tools and environment. A change that an
 * agent is to judge must not bring its own.
 */

const folders = [
  '.claude',
  '.codex',
  '.gemini',
  '.cursor',
  '.opencode',
  '.agents',
  '.clinerules',
  '.windsurf',
]

const files = [
  'claude.md',
  'claude.local.md',
  'agents.md',
  'agents.override.md',
  'agent.md',
  'gemini.md',
  // Of OpenCode, besides AGENTS.md.
  'context.md',
  'qwen.md',
  '.mcp.json',
  'opencode.json',
  'opencode.jsonc',
  '.opencode.json',
  'copilot-instructions.md',
  '.cursorrules',
  '.windsurfrules',
  '.clinerules',
  '.geminiignore',
  '.aider.conf.yml',
  '.goosehints',
  // Programs that are built with Bun read these in their folder.
  'bunfig.toml',
]

/** `.env`, `.env.local`: programs read variables from them, such as the address of a model. */
const other = /^\.env(\.|$)|\.instructions\.md$/

/**
 * Whether a path of a tree, with `/` between its parts and a character for each byte, is such a file. File
 * systems may ignore case, in their way also that of `ſ`, and characters that are not seen.
 */
export const steersAgent = (path: string): boolean => {
  const text = Buffer.from(path, 'latin1')
    .toString()
    .replaceAll(/\p{Cf}/gu, '')
  const parts = text.split('/').map((part) => part.toUpperCase().toLowerCase())
  const name = parts.at(-1) ?? ''
  return parts.some((part) => folders.includes(part)) || files.includes(name) || other.test(name)
}
