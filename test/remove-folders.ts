import { afterAll } from 'vitest';
import { removeFolders } from './datasets.js';

// In a separate file, which runs again for each test file: files in one process share what they import.
afterAll(removeFolders);
