"""One contract per framework: who calls, who owns which buffer, which thread, which errors."""
